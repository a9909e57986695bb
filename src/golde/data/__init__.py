"""Facts: reading, numbering, splitting, describing and looking them up."""
