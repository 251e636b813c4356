"""Who draws, what is counted on the draws, and whether rows are independent."""
