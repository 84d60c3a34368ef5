#!/bin/sh
# In the virtual machine: the network of VRF-shadowing with FRRouting on every machine (examples/frr.yaml). FRRouting learns and installs; a
# server leaves and returns under downloads, of which none fails; and the counters say that strays were taken away.
#
#   frr.sh          the load balancer is a Sextant edge
#   frr.sh kernel   it loads no program, and its kernel forwards by a table and its shadow (docs/howto/frr.md)
set -eu
PATH=$PATH:/job
balancer=${1:-edge}
nodes=/run/sextant/lab/frr/nodes
work=$(mktemp -d)

on() {
	node=$1
	shift
	sextant lab exec frr "$node" -- "$@"
}

# lab_file prints the lab. For the kernel, the edge's role makes room for a VRF; its shadow has a VRF device, as IPv4 needs.
lab_file() {
	case $balancer in
	edge) cat /job/src/examples/frr.yaml ;;
	kernel)
		awk '
		/- chown/ && !devices++ {
			print "        - ip link add shadow type vrf table 101"
			print "        - ip link set shadow up"
			print "        - sysctl -qw net.vrf.strict_mode=1"
			print "        - \"ip sr tunsrc set fd00:5e::e1\""
		}
		/^        edge:/ {
			print "        routing:"
			print "          vrfs:"
			print "            - {name: blue, source: bgp, datapath: kernel, install: 100, interfaces: [client],"
			print "               shadow: {table: 101, sid: \"fcbb:bb00:d0::\"}}"
			inside = 1
		}
		/^        bgp:/ { inside = 0 }
		!inside' /job/src/examples/frr.yaml
		;;
	esac
}

# servers prints where new connections may go.
servers() {
	case $balancer in
	edge) on lb sextant backend list ;;
	kernel) on lb sextant route list ;;
	esac
}

# ready prints how many servers the load balancer gives connections to. A new one is draining at first: were it to come up under the
# downloads, that would be a change more than the shadow remembers.
ready() { servers | grep -v ' 0\.0%' | grep -o 'fcbb:bb00:[123]:[0-9a-f:]*' | sort -u | wc -l; }

# counted WHICH prints how many packets the servers have counted so: strayPackets were sent to the shadow, and returnedPackets came from it
# to a server that has not got their connection either.
counted() {
	for web in web1 web2 web3; do
		on $web sextant status -o json | grep -o "\"$1\": *[0-9]*" | grep -o '[0-9]*$'
	done | awk '{ s += $1 } END { print s + 0 }'
}

# note WHAT keeps when something was done, on the clock of the packets.
note() { echo "$(date -u +%T.%N) $*" >>"$work/times"; }

# explain prints what helps to find out why downloads failed.
explain() {
	echo "--- when" && cat "$work/times"
	echo "--- resets that the client got" && cat "$work/resets"
	on lb sextant bgp peers
	servers
	on web1 vtysh --vty_socket "$nodes/web1/frr" -d bgpd -c 'show bgp ipv4 vpn'
	for web in web1 web2 web3; do
		echo "--- $web" && on $web nstat -a | grep -E 'Rst|Reset|Retrans|Timeout|Challenge|Syncookie|Listen|Overflow'
	done
	echo "--- log of lb" && sextant lab logs frr lb sextant | tail -n 40
}

finish() {
	status=$?
	[ $status = 0 ] || explain
	sextant lab down frr
	exit $status
}

lab_file >"$work/frr.yaml"
touch "$work/times" "$work/resets"
sextant lab up --ready-within 4m "$work/frr.yaml"
trap finish EXIT

n=0
until [ "$(ready)" = 3 ]; do
	n=$((n + 1))
	[ $n -lt 60 ] || { echo "frr: the load balancer does not learn three servers" && on lb sextant bgp routes && exit 1; }
	sleep 2
done
on web1 ip -6 route show | grep seg6local
servers
on client curl -sf --max-time 20 http://198.51.100.80/ >/dev/null

on client timeout 300 tcpdump -lnni eth0 'src host 198.51.100.80 and tcp[tcpflags] & tcp-rst != 0' >"$work/resets" 2>/dev/null &
before=$(counted strayPackets)
# A download takes seconds, so that each change meets some.
on client sextant loadgen "http://198.51.100.80/?ms=0&bytes=200000" --workers 12 --duration 40s --deadline 2m -o json >"$work/loaded" &
load=$!
note "downloads begin"
sleep 12
note "web3 leaves"
on web3 sh "$nodes/web3/leave.sh"
sleep 12
note "web3 returns"
on web3 sh "$nodes/web3/return.sh"
wait $load
note "downloads have ended"
after=$(counted strayPackets)
returned=$(counted returnedPackets)
failed=$(grep -o '"failed": *[0-9]*' "$work/loaded" | head -n 1 | grep -o '[0-9]*')
finished=$(grep -o '"done": *[0-9]*' "$work/loaded" | head -n 1 | grep -o '[0-9]*')
for web in web1 web2 web3; do on $web sextant status | sed -n '/^VRFs/,$p'; done
echo "frr: $finished downloads, $failed failed; $((after - before)) strays were taken away; $returned packets belonged to nobody"
if [ "$failed" != 0 ] || [ "$finished" = 0 ] || [ "$after" -le "$before" ]; then
	cat "$work/loaded"
	exit 1
fi
