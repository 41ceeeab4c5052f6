"""Ask a language model: of any provider of litellm, or behind OpenAI's protocol."""
