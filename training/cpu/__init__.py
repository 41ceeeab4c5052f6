"""Make verl and vLLM run, and start quickly, on a machine without an accelerator."""
