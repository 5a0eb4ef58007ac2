#!/bin/sh
# Writes the Go code of p4/agent/agentpb/agent.proto, and the sum of the source that it was made of, which a test compares. It
# needs protoc (Debian's protobuf-compiler will do); the plug-ins are built from their Go modules into .cache/proto.
#
# Usage: .ci/proto.sh
set -eu
cd "$(dirname "$0")/.."
command -v protoc >/dev/null || { echo "protoc is missing (apt-get install protobuf-compiler)" >&2; exit 1; }
bin=$PWD/.cache/proto
GOBIN=$bin go install google.golang.org/protobuf/cmd/protoc-gen-go@v1.36.12
GOBIN=$bin go install google.golang.org/grpc/cmd/protoc-gen-go-grpc@v1.6.0
cd p4/agent/agentpb
PATH=$bin:$PATH protoc --go_out=. --go_opt=paths=source_relative --go-grpc_out=. --go-grpc_opt=paths=source_relative agent.proto
# Which protoc it was says nothing about the code, and differs from machine to machine.
sed -i '/^\/\/ .*protoc  *v/d' agent.pb.go agent_grpc.pb.go
gofmt -w agent.pb.go agent_grpc.pb.go
sha256sum agent.proto >agent.proto.sha256
