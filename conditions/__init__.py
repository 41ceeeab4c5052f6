"""Medicine in tables: conditions with their findings, the names of diagnoses and examinations, and files of cases."""
