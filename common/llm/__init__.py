"""The one way to ask a language model: any provider of litellm, or any endpoint that speaks
OpenAI's protocol. Importing this imports nothing heavy.
"""
