"""Drawing and counting of outputs, and checks that rows and coordinates are independent."""
