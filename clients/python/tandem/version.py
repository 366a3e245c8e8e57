"""The client's version, apart so that a build can read it without importing the package."""

VERSION = "0.1.0"
