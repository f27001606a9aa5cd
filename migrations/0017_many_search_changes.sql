-- A transaction that changes many records, such as one of an import, writes a row for a hundred of them.
alter table search_changes
    -- Other records of the same kind that the transaction changed; null: none.
    add column more_ids uuid[];
