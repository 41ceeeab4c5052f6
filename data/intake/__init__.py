"""Two commands under their old names. What they run is in conditions/intake."""
