"""Files of consultations and cases: checked, and turned into rows that the doctors train on."""
