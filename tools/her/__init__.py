"""Building of the weights that tell his from him: from any English corpus, without labels."""
