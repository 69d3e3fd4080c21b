"""OpenAI Chat Completions: everything that is known of this wire format."""
