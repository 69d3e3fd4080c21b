"""The engine's parts: routes at run time, deciding, calling, answering."""
