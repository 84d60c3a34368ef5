#!/bin/sh
# How many times slower this machine is now than one that counts this far in a second: 1 at least.
began=$(date +%s)
i=0
while [ $i -lt "${SLOWNESS_COUNT:-50000}" ]; do
	i=$((i + 1))
done
took=$(($(date +%s) - began))
[ $took -ge 1 ] || took=1
echo $took
