"""GoldE inside other packages: their training loops, samplers and evaluators around our scores."""
