#!/bin/sh
# shellcheck disable=SC2317 # functions are commands of step
# The tests of the virtual machine, inside it. VM_TESTS chooses: program linux doctor datapath telemetry lab frr router (all); bench and
# forwarding are asked for by name.
failed=0
log=$(mktemp)
PATH=$PATH:/job

# within SECONDS COMMAND... ends a command of this script, and all that it started, after so many seconds.
within() {
	limit=$1
	shift
	setsid sh "$0" part "$@" &
	part=$!
	(
		sleep "$limit"
		echo "it did not end within $limit s; above is what it had printed by then"
		kill -KILL "-$part"
	) &
	watch=$!
	wait "$part"
	status=$?
	kill "$watch" 2>/dev/null
	return $status
}

# step NAME SECONDS COMMAND... says when it begins, and then one line, or all that a failed command printed. The seconds are those of a
# machine that has nothing else to do.
step() {
	name=$1
	seconds=$(($2 * slowness))
	shift 2
	case " ${VM_TESTS:-program linux doctor datapath telemetry lab frr router} " in *" $name "*) ;; *) return ;; esac
	began=$(cut -d . -f 1 /proc/uptime)
	echo "begin	$name	$(uname -r)	$seconds s at most"
	if within "$seconds" "$@" >"$log" 2>&1; then
		grep '^frr: \|^    --- SKIP' "$log"
		echo "ok	$name	$(uname -r)	$(($(cut -d . -f 1 /proc/uptime) - began)) s"
	else
		cat "$log"
		echo "FAIL	$name	$(uname -r)	$(($(cut -d . -f 1 /proc/uptime) - began)) s"
		failed=1
	fi
}

package() {
	cd "/job/src/$1" || exit 1
	shift
	"$@"
}

# The same file as on any machine.
quickstart() {
	sextant lab up --ready-within 4m /job/src/examples/quickstart.yaml &&
		sextant lab exec quickstart client -- curl -sf --max-time 30 "http://[2001:db8:80::80]/" &&
		sextant lab exec quickstart client -- curl -sf --max-time 30 "http://198.51.100.80/" &&
		sextant lab down quickstart
}

# What needs no kernel of any kind: the binary starts, reads, checks and converts.
program() {
	work=$(mktemp -d)
	sextant version && sextant help >/dev/null || return
	printf '%s\n' '-A -t 192.0.2.10:80 -s wlc' '-a -t 192.0.2.10:80 -r 10.0.0.10:80 -g -w 2' >"$work/rules"
	echo '10.0.0.10 fcbb:bb00:1:: srv01' >"$work/sids"
	sextant convert ipvsadm "$work/rules" --map "$work/sids" >"$work/edge.yaml" && sextant check -f "$work/edge.yaml"
}

if [ "${1:-}" = part ]; then
	shift
	"$@"
	exit
fi
slowness=$(sh /job/src/scripts/vm/slowness.sh)

# Before Linux 6.3 no kernel tells which XDP features an interface has.
unknown='^$'
case $(uname -r) in 6.1.*)
	unknown='TestFaults(OfSteering)?AreNamed/(.*without_native_XDP|no_native_XDP|generic_mode$|egress_in_generic_mode|fewer_receive_queues'
	unknown="$unknown|peer_without_XDP|peer_of_the_uplink|uplink_that_takes_no)"
	;;
esac
step program 20 program
step linux 300 package linux /job/linux.test -test.count=1
step doctor 300 package agent/doctor /job/doctor.test -test.count=1 -test.skip "$unknown"
# Emulated processors are slow: few frames, and of the data plane's tests those that meet the verifier, the hooks and the helpers.
met='Loads|EdgeAgrees|HostAgrees|StraysAgree|HeadendAgrees|FlowsAgree|FlowPathsAgree|MergeAgrees|HMACForLinux|HMACFromLinux|HMACHostAgrees'
met="$met|FlowChanges|TelemetryAgrees|TelemetryPackets|TelemetryOption|PathSource|DSCP|Attach|TakeOver|Takes"
met="$met|Leaves|Shadow|TestCapture|Loops|TestHere\$|TimeWait|Strays\$|StraySockets|Bond|VLAN"
step datapath 600 package datapath /job/datapath.test -test.count=1 -frames 20000 -flood 2000 -test.v \
	-test.run "$met"
# 100 MB of TCP three times through source, transit and sink; a stock Linux router that writes into traces. Before Linux 6.2 no program can
# read how long a queue is.
carried='TestInbandTelemetry|TestTelemetryOptions|TestTelemetryPlain'
case $(uname -r) in 6.1.*) ;; *) carried="$carried|TestInbandQueue" ;; esac
step telemetry 400 package test/e2e /job/e2e.test -test.count=1 -test.v -lab.ready 4m \
	-test.run "^($carried)\$"
step lab 200 quickstart
step frr 200 sh /job/src/scripts/vm/frr.sh
step router 200 sh /job/src/scripts/vm/frr.sh kernel
# With VM_COUNT=1, nanoseconds are instructions.
case " ${VM_TESTS:-} " in *" bench "*)
	package datapath /job/datapath.test -test.run '^$' -test.bench VRFSockets -test.benchtime 1x -passes 3 -repeat 4096 || failed=1
	;;
esac
# The same packets through pairs of veth and, with VM_CABLES=1, through virtio. IPVS has a bucket for each connection.
forwarding() {
	modprobe ip_vs conn_tab_bits=20 && modprobe ip_vs_mh && modprobe virtio_pci && modprobe virtio_net || return
	/job/datapath.test -test.run TestForwardingBench || return
	bench="/job/datapath.test -test.run ^$ -test.bench Forwarding -test.benchtime 1x"
	eval "$bench ${VM_FLAGS:-"-passes 3 -repeat 16384 -rows '( 1|,384) flows?$'"}" || return
	[ ! -e /sys/class/net/eth3 ] ||
		eval "$bench -nics eth0,eth1,eth2,eth3 ${VM_FLAGS:-"-passes 5 -repeat 4096 -rows ' 1 flow$'"}"
}
case " ${VM_TESTS:-} " in *" forwarding "*) package datapath forwarding || failed=1 ;; esac
exit $failed
