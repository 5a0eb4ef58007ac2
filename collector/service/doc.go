// Package service is what a program that runs for long does for the machine that it runs on: it tells the service manager
// how it is, leaves out lines of its log that come too often, and knows how much memory it may take.
package service
