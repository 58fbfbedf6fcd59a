"""Work on other machines: where (`address`), what travels (`calls`), to whom (`dask`), and how often (`spread`)."""
