"""Installs checkmate_tf; tool settings are in pyproject.toml."""

from pathlib import Path

from setuptools import find_packages, setup

setup(
    name="checkmate_tf",
    version="0.1.0",
    description="Train within a memory budget: optimal tensor rematerialization for TensorFlow 2",
    long_description=Path(__file__).with_name("README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    license="Apache-2.0",
    python_requires=">=3.10,<3.14",
    packages=find_packages(include=["solvers*", "profiles*", "checkmate_tf*"]),
    package_data={"profiles": ["*.json"]},
    install_requires=[
        "numpy",
        "scipy>=1.9",
        "networkx",
        "numba>=0.57",
        "highspy>=1.7",
        "cvxpy>=1.5",
        "joblib",
        "rich",
        "matplotlib",
    ],
    extras_require={
        "cpu": ["tensorflow-cpu>=2.16"],
        "gpu": ["tensorflow[and-cuda]>=2.16"],
        "gurobi": ["gurobipy>=11"],
        "demo": ["scikit-learn"],
        "ray": ["ray"],
        "dev": [
            "pytest",
            "pytest-xdist",
            "hypothesis",
            "import-linter",
            "ruff",
            "mypy",
            "gurobipy>=11",
            "scikit-learn",
            "dask[distributed]",
            "sphinx",
            "myst-parser",
            "furo",
            "ipykernel",
            "nbclient",
            "nbformat",
        ],
    },
    entry_points={"console_scripts": ["checkmate-tf=checkmate_tf.cli.main:main"]},
)
