"""Looking into what a model has learned."""
