"""Parts of the sales report that other scripts may use too."""
