-- Counts the inserts of this service that are running. On a cluster also those of other nodes, and replicas that lag.
SELECT sum(pending)
FROM
(
    -- Every node knows a statement's initial user. Only the initiator has the database in its session; the statements that it
    -- sends to the shards name the database in their text.
    SELECT count() AS pending
    FROM /*cluster:clusterAllReplicas('{cluster}', */system.processes/*cluster:)*/
    WHERE query_kind = 'Insert' AND initial_user = (SELECT currentUser())
        AND (current_database = (SELECT currentDatabase())
            /*cluster:OR match(query, '^INSERT INTO `?{database}`?[.]')*/)
    /*cluster:
    UNION ALL
    SELECT count() AS pending
    FROM clusterAllReplicas('{cluster}', system.replicas)
    WHERE database = '{database}'
        AND (is_readonly OR inserts_in_queue > 0 OR (log_max_index > 0 AND log_pointer <= log_max_index))*/
)
