#!/bin/sh
# Fetches the Kafka broker that the tests of the fleet run against, from its Maven artifacts, with whatever repository
# the configuration of Maven names:
#
#   .cache/kafka/4.1.0/lib/*.jar   a broker and controller in one process (KRaft)
#
# A version that is there already is kept. Running it needs a Java of version 17 or later.
#
# Usage: .ci/kafka.sh [VERSION]
set -eu

. "$(dirname "$0")/cache.sh"
root=$PWD cache=$PWD/.cache/kafka
version=${1:-4.1.0}
log() { printf 'kafka: %s\n' "$*" >&2; }
have() { command -v "$1" >/dev/null 2>&1; }

# One at a time: a second one waits and then finds everything there.
mkdir -p "$cache"
if have flock && [ "${KAFKA_LOCKED:-}" != 1 ]; then
	KAFKA_LOCKED=1 exec flock "$cache/lock" "$0" "$@"
fi

# need COMMAND PACKAGE... makes sure that COMMAND exists.
need() {
	command=$1
	shift
	have "$command" && return 0
	log "$command is missing: installing the Debian package $*"
	"$root/.ci/apt.sh" "$@" && have "$command"
}

need java default-jre-headless
java=$(java -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -n 1)
if [ "${java:-0}" -lt 17 ]; then
	log "Kafka $version needs Java 17 or later, and this one is ${java:-unknown}"
	exit 1
fi
if [ -f "$cache/$version/lib/kafka_2.13-$version.jar" ]; then
	log "$version is there"
	exit 0
fi
need mvn maven

work=$cache/fetch-$version
rm -rf "$work"
mkdir -p "$work" "$cache/$version"
cat >"$work/pom.xml" <<POM
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>hopscope</groupId>
  <artifactId>kafka</artifactId>
  <version>1</version>
  <dependencies>
    <dependency>
      <groupId>org.apache.kafka</groupId>
      <artifactId>kafka_2.13</artifactId>
      <version>$version</version>
    </dependency>
    <dependency>
      <groupId>org.apache.logging.log4j</groupId>
      <artifactId>log4j-slf4j-impl</artifactId>
      <version>2.24.3</version>
    </dependency>
  </dependencies>
</project>
POM
log "fetching $version (output in .cache/kafka/fetch-$version.log)"
if ! mvn -B -f "$work/pom.xml" dependency:copy-dependencies -DincludeScope=runtime \
	-DoutputDirectory="$work/lib" >"$cache/fetch-$version.log" 2>&1; then
	tail -n 30 "$cache/fetch-$version.log" >&2
	log "$version did not come"
	exit 1
fi
[ -f "$work/lib/kafka_2.13-$version.jar" ] || { log "kafka_2.13-$version.jar is not among what came"; exit 1; }
rm -rf "$cache/$version/lib"
mv "$work/lib" "$cache/$version/lib"
rm -rf "$work"
log "$version is in .cache/kafka/$version/lib"
