// Package service connects a long-running program to the machine that it runs on: it reports its status to the service manager,
// leaves out log lines that come too often, and finds how much memory it may take.
package service
