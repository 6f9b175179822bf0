"""Tests: a file for every source file, and end-to-end tests."""
