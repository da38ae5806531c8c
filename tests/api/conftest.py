"""A caller's question, spoken by the product's own voice."""

from tests.session.conftest import spoken_question

__all__ = ["spoken_question"]
