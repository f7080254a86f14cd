"""Language servers: the protocol, one server's connection, the table of servers, and the service that keeps them."""
