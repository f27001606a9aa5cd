-- Gains of up to 1,000 videos over a window, one row per video that was observed by its end.
--
-- org         organization
-- videos      (subject_id, video_id) of each video
-- from_zero   video_ids that start from zero: posted on or after the day their subject's tracking began
-- since       rows before this day are not looked at; 1970-01-01 looks at everything
-- start, end  the window, both inclusive
SELECT
    video_id,
    ifNull(argMax(view_count, date) - coalesce(argMaxIf(view_count, date, date < {start:Date}),
        if(video_id IN {from_zero:Array(UInt64)} AND argMin(tuple(view_count), date).1 IS NOT NULL, 0, argMin(view_count, date))), 0) AS view_gain,
    ifNull(argMax(like_count, date) - coalesce(argMaxIf(like_count, date, date < {start:Date}),
        if(video_id IN {from_zero:Array(UInt64)} AND argMin(tuple(like_count), date).1 IS NOT NULL, 0, argMin(like_count, date))), 0) AS like_gain,
    ifNull(argMax(comment_count, date) - coalesce(argMaxIf(comment_count, date, date < {start:Date}),
        if(video_id IN {from_zero:Array(UInt64)} AND argMin(tuple(comment_count), date).1 IS NOT NULL, 0, argMin(comment_count, date))), 0) AS comment_gain,
    ifNull(argMax(share_count, date) - coalesce(argMaxIf(share_count, date, date < {start:Date}),
        if(video_id IN {from_zero:Array(UInt64)} AND argMin(tuple(share_count), date).1 IS NOT NULL, 0, argMin(share_count, date))), 0) AS share_gain,
    ifNull(argMax(saved_count, date) - coalesce(argMaxIf(saved_count, date, date < {start:Date}),
        if(video_id IN {from_zero:Array(UInt64)} AND argMin(tuple(saved_count), date).1 IS NOT NULL, 0, argMin(saved_count, date))), 0) AS saved_gain,
    ifNull(argMax(play_count, date) - coalesce(argMaxIf(play_count, date, date < {start:Date}),
        if(video_id IN {from_zero:Array(UInt64)} AND argMin(tuple(play_count), date).1 IS NOT NULL, 0, argMin(play_count, date))), 0) AS play_gain,
    ifNull(argMax(ig_play_count, date) - coalesce(argMaxIf(ig_play_count, date, date < {start:Date}),
        if(video_id IN {from_zero:Array(UInt64)} AND argMin(tuple(ig_play_count), date).1 IS NOT NULL, 0, argMin(ig_play_count, date))), 0) AS ig_play_gain,
    ifNull(argMax(fb_play_count, date) - coalesce(argMaxIf(fb_play_count, date, date < {start:Date}),
        if(video_id IN {from_zero:Array(UInt64)} AND argMin(tuple(fb_play_count), date).1 IS NOT NULL, 0, argMin(fb_play_count, date))), 0) AS fb_play_gain,
    ifNull(argMax(fb_like_count, date) - coalesce(argMaxIf(fb_like_count, date, date < {start:Date}),
        if(video_id IN {from_zero:Array(UInt64)} AND argMin(tuple(fb_like_count), date).1 IS NOT NULL, 0, argMin(fb_like_count, date))), 0) AS fb_like_gain,
    max(observed_at) AS as_of
FROM video_snapshots FINAL
WHERE org_id = {org:UUID}
    AND (subject_id, video_id) IN {videos:Array(Tuple(UInt64, UInt64))}
    AND date BETWEEN {since:Date} AND {end:Date}
GROUP BY video_id
