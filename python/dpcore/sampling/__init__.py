"""Who draws, what is counted on the draws, and whether rows and coordinates are independent."""
