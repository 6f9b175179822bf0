"""Programs as Keras' own guides write them, trained by `fit` as they are and within a budget."""
