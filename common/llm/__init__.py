"""The one way to ask a language model: any provider of litellm, or any endpoint that speaks
OpenAI's protocol. Importing this imports nothing heavy.

    from common.llm.client import client_from_settings

    client = client_from_settings(load_settings(), cache=Path("outputs/llm_cache.sqlite"))
    answer = await client.ask([{"role": "user", "content": "..."}], Verdict)    # a Verdict, or LLMError
"""
