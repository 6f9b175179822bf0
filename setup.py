"""Installs checkmate_tf; the settings of tools are in pyproject.toml."""

import re
from pathlib import Path

from setuptools import find_packages, setup

HERE = Path(__file__).parent


def version() -> str:
    """The one that the package gives itself, read without importing what it needs."""
    source = (HERE / "checkmate_tf" / "version.py").read_text(encoding="utf-8")
    return re.search(r'^__version__ = "(.+)"$', source, re.MULTILINE)[1]


setup(
    name="checkmate_tf",
    version=version(),
    description="Train within a memory budget: optimal tensor rematerialization for TensorFlow 2",
    long_description=(HERE / "README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    license_expression="Apache-2.0",
    license_files=["LICENSE"],
    keywords=[
        "TensorFlow",
        "Keras",
        "rematerialization",
        "gradient checkpointing",
        "activation checkpointing",
        "memory budget",
        "integer programming",
        "deep learning",
        "training",
    ],
    classifiers=[
        "Development Status :: 4 - Beta",
        "Intended Audience :: Developers",
        "Intended Audience :: Science/Research",
        "Operating System :: POSIX :: Linux",
        "Programming Language :: Python :: 3",
        "Programming Language :: Python :: 3.10",
        "Programming Language :: Python :: 3.11",
        "Programming Language :: Python :: 3.12",
        "Programming Language :: Python :: 3.13",
        "Programming Language :: Python :: 3.14",
        "Topic :: Scientific/Engineering :: Artificial Intelligence",
        "Typing :: Typed",
    ],
    project_urls={"Paper": "https://arxiv.org/abs/1910.02653"},
    python_requires=">=3.10,<3.15",
    packages=find_packages(include=["solvers*", "profiles*", "checkmate_tf*"]),
    package_data={"": ["py.typed"], "profiles": ["*.json"]},
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
            "coverage>=7.10",
            "hypothesis",
            "import-linter",
            "ruff",
            "mypy",
            "gurobipy>=11",
            "scikit-learn",
            "dask[distributed]",
            "build",
            "setuptools>=77",
            "nox",
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
