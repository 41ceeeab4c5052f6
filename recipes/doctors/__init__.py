"""How the invented patients of both doctors were drawn, and what their bundled models learned."""
