"""What a run is to do, checked before anything heavy is imported: the plan, its presets and verl's
tree.
"""
