"""How answers are judged; shared by all agents. Knows no tool and no training."""
