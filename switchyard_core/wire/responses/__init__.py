"""OpenAI Responses: everything that is known of this wire format."""
