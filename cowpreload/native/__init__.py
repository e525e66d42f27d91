"""C sources of the native core and the cffi builder; the compiled module is here."""
