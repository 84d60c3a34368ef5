#!/bin/sh
cd /work/tree && cat ../work/x "$dir/root/y" www.example.org/root
cp "/tmp/state" .
cp state /var/tmp/x
cp state /home/ann/state
export GOPROXY=https://proxy.golang.org,direct
ls /root
