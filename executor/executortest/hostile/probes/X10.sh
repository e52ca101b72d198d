tries asking kill -0 "$pid"
tries 'the host' kill -0 "$host"
tries stopping kill -TERM "$pid"
