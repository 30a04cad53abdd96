"""Measures on your machine what the book JAX, Measured measured on its own."""
