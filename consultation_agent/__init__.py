"""The consultation agent: a doctor who asks a patient, and ends with a diagnosis and advice."""
