"""The diagnosis agent: a doctor who orders examinations, and ends with a diagnosis."""
