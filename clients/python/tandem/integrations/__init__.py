"""Callbacks that report, stop, keep and restore trials from within training libraries.

Each is a module of its own, which needs its library and nothing else: ``tandem.integrations.lightning``, ``.keras``,
``.transformers`` and ``.sklearn``.
"""
