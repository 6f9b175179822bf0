"""A step and a batch in; what it holds, by kind and by layer, and which devices hold it, out."""
