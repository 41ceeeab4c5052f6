"""The offline judge: it pays an answer for what it quotes of gold."""
