// Package conn makes the connections of a fleet to Kafka: where the brokers are, with which security, and what an error means.
// Writers to Kafka and readers from it share the settings and the clients.
//
// Certificates, keys and passwords are read anew for every connection, so that a renewed one is used without a restart;
// connections that are open stay so. Where a file cannot be read, or certificate and key do not belong together, as in the
// middle of a renewal, what was read before goes on to be used, and [Client.Problem] says so.
package conn
