#!/bin/sh
# In the virtual machine: the network of VRF-shadowing with FRRouting on every machine (examples/frr.yaml). FRRouting learns and installs; a
# server leaves and returns under downloads, of which none fails; and the counters say that strays were taken away.
set -eu
PATH=$PATH:/job
nodes=/run/sextant/lab/frr/nodes
loaded=$(mktemp)

on() {
	node=$1
	shift
	sextant lab exec frr "$node" -- "$@"
}

# strays prints how many packets each server has sent to the shadow.
strays() {
	for web in web1 web2 web3; do
		on $web sextant status -o json | grep -o '"strayPackets": *[0-9]*' | grep -o '[0-9]*'
	done
}

sum() { awk '{ s += $1 } END { print s + 0 }'; }

sextant lab up --ready-within 4m /job/src/examples/frr.yaml
finish() {
	status=$?
	[ $status = 0 ] || on web1 vtysh --vty_socket "$nodes/web1/frr" -d bgpd -c 'show bgp ipv4 vpn'
	sextant lab down frr
	exit $status
}
trap finish EXIT

n=0
until [ "$(on lb sextant backend list -o name | grep -c bgp-)" = 3 ]; do
	n=$((n + 1))
	[ $n -lt 60 ] || { echo "frr: the edge does not learn three servers" && on lb sextant bgp peers && on lb sextant bgp routes && exit 1; }
	sleep 2
done
on web1 ip -6 route show | grep seg6local
on lb sextant backend list
on client curl -sf --max-time 20 http://198.51.100.80/ >/dev/null

before=$(strays | sum)
# A download takes seconds, so that each change meets some.
on client sextant load "http://198.51.100.80/?ms=0&bytes=200000" --workers 12 --duration 40s --deadline 2m -o json >"$loaded" &
load=$!
sleep 12
on web3 sh "$nodes/web3/leave.sh"
sleep 12
on web3 sh "$nodes/web3/return.sh"
wait $load
after=$(strays | sum)
failed=$(grep -o '"failed": *[0-9]*' "$loaded" | head -n 1 | grep -o '[0-9]*')
finished=$(grep -o '"done": *[0-9]*' "$loaded" | head -n 1 | grep -o '[0-9]*')
for web in web1 web2 web3; do on $web sextant status | sed -n '/^VRFs/,$p'; done
echo "frr: $finished downloads, $failed failed; $((after - before)) strays were taken away"
if [ "$failed" != 0 ] || [ "$finished" = 0 ] || [ "$after" -le "$before" ]; then
	cat "$loaded"
	exit 1
fi
