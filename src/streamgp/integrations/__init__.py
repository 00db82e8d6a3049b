"""Bridges to other libraries; each module needs the extra of its name, and is imported by its own path."""

__all__: list[str] = []
