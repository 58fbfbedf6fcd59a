"""Work on other machines: addresses, calls and their distribution (`calls`), and dask as an executor (`dask`)."""
