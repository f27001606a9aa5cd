//! Topics of simulated accounts, and names, biographies and captions by language. All are invented.
//!
//! Some contain quotes, commas, line breaks and emoji, as real ones do.

/// What an account is about.
pub struct Topic {
    pub category: &'static str,
    pub emoji: &'static str,
    pub hashtags: [&'static str; 4],
    /// Names of creators that are no person: as in a username, and as displayed.
    pub projects: [(&'static str, &'static str); 4],
    /// English captions; other languages have captions for any topic.
    pub captions: [&'static str; 8],
}

pub const TOPICS: [Topic; 8] = [
    Topic {
        category: "Food",
        emoji: "🍜",
        hashtags: ["recipe", "streetfood", "homecooking", "onepot"],
        projects: [
            ("theslowladle", "The Slow Ladle"),
            ("crumbandember", "Crumb & Ember"),
            ("nightmarketnotes", "Night Market Notes"),
            ("threepansonefire", "Three Pans, One Fire"),
        ],
        captions: [
            "The crispiest potatoes of my life, and the trick is baking soda {tags}",
            "Dinner in {n} minutes, washing-up included {emoji} {tags}",
            "My grandmother watched me make this and said nothing, which is the highest praise there is 🥹 {tags}",
            "Stop rinsing your mushrooms. Or don't. But stop telling me about it 🍄",
            "Save this for Sunday:\n• 400 g flour\n• 260 g water\n• 8 g salt\n• patience\n\nFold four times, sleep, bake hot. {tags}",
            "He asked for the recipe. I said \"no\". Part {n} {emoji}",
            "Ranking every noodle soup within walking distance, no. {n} 🍲 {tags}",
            "It burned. We ate it anyway. 10/10 {tags}",
        ],
    },
    Topic {
        category: "Beauty",
        emoji: "💄",
        hashtags: ["makeup", "skincare", "grwm", "beautytips"],
        projects: [
            ("bareshelf", "Bare Shelf"),
            ("glowdepartment", "The Glow Department"),
            ("twomirrors", "Two Mirrors"),
            ("lashanddaughter", "Lash & Daughter"),
        ],
        captions: [
            "Get ready with me for a wedding I was not invited to 💌 {tags}",
            "I wore this for {n} hours in 34 °C so you don't have to {tags}",
            "Your skin barrier called. It wants an apology 🧴 {tags}",
            "One product, five looks. Which is your favourite? 1–5 👇",
            "The order matters:\n1. cleanse\n2. wait\n3. actually wait\n4. moisturise {tags}",
            "Red lip, no excuse {emoji}",
            "Testing the cheapest brush in the shop, day {n} {tags}",
            "Nobody:\nMe at 2 a.m.: let's try graphic liner ✨ {tags}",
        ],
    },
    Topic {
        category: "Fitness",
        emoji: "💪",
        hashtags: ["workout", "running", "mobility", "homegym"],
        projects: [
            ("slowestinthepack", "Slowest in the Pack"),
            ("kettleandchalk", "Kettle & Chalk"),
            ("stairclub", "Stair Club"),
            ("tenminutesdaily", "Ten Minutes Daily"),
        ],
        captions: [
            "Week {n} of learning the handstand. Still mostly falling {emoji}",
            "If your knees hurt on stairs, try this for two weeks {tags}",
            "Ran 10 k before sunrise and told everyone about it, as required by law 🌅 {tags}",
            "No gym, no gear, no excuses. 12 minutes. Go. {tags}",
            "The warm-up you skip is the injury you get 🧘 {tags}",
            "From 0 to 5 pull-ups: my log, session {n} {tags}",
            "Rest day. That's the post.",
            "\"Are you training for something?\" – yes, for being 80 {emoji} {tags}",
        ],
    },
    Topic {
        category: "Travel",
        emoji: "✈️",
        hashtags: ["travel", "hiddenplaces", "vanlife", "citybreak"],
        projects: [
            ("lastferryhome", "Last Ferry Home"),
            ("windowseatdiary", "Window Seat Diary"),
            ("slowtrainclub", "Slow Train Club"),
            ("mapsandmarmalade", "Maps & Marmalade"),
        ],
        captions: [
            "The village with more cats than people 🐈 {tags}",
            "{n} things I wish I had known before my first night train {tags}",
            "Day {n} in the van: it rains inside now {emoji}",
            "You can see the whole bay from here, and nobody comes 🌊 {tags}",
            "We took the wrong bus and it was the best day of the trip {tags}",
            "Airport outfit vs. what I look like when I land ✈️",
            "48 hours, one backpack, 90 euros. Full list in the comments {tags}",
            "I don't want to go home, vol. {n} 🏔️ {tags}",
        ],
    },
    Topic {
        category: "Gaming",
        emoji: "🎮",
        hashtags: ["gaming", "speedrun", "indiegame", "letsplay"],
        projects: [
            ("secondplayer", "Second Player"),
            ("savepointcafe", "Save Point Café"),
            ("framedrop", "Frame Drop"),
            ("pixelorchard", "Pixel Orchard"),
        ],
        captions: [
            "{n} attempts. One frame. I'm fine. {emoji}",
            "This boss has no right to be this rude 💀 {tags}",
            "New personal best, and my neighbour now knows my name {tags}",
            "Tiny game, one developer, three years of work. Please look at this {tags}",
            "Chat told me to jump. I should have known. {emoji}",
            "POV: your little brother has the controller {tags}",
            "The secret room everyone walks past, no. {n} 🗝️ {tags}",
            "gg, go next",
        ],
    },
    Topic {
        category: "Music",
        emoji: "🎧",
        hashtags: ["cover", "newmusic", "guitar", "behindthesong"],
        projects: [
            ("quietamps", "Quiet Amps"),
            ("kitchenchoir", "The Kitchen Choir"),
            ("sidebfm", "Side B"),
            ("fourtrackhearts", "Four Track Hearts"),
        ],
        captions: [
            "Wrote this on the bus. Verse {n} is about you, sorry 🎸 {tags}",
            "Wait for the harmony 🥺 {emoji}",
            "I slowed it down and now it's a different song {tags}",
            "The drummer of my band is my dad, part {n} 🥁 {tags}",
            "Which take? A (nice) or B (brave)? {emoji}",
            "One microphone, one room, no edits {tags}",
            "Learning the cello at 31: month {n} 🎻 {tags}",
            "out on friday. that's all. 🖤",
        ],
    },
    Topic {
        category: "Learning",
        emoji: "📚",
        hashtags: ["science", "history", "languages", "didyouknow"],
        projects: [
            ("oneminuteatlas", "One-Minute Atlas"),
            ("badlydrawnphysics", "Badly Drawn Physics"),
            ("thewordattic", "The Word Attic"),
            ("askmymoss", "Ask My Moss"),
        ],
        captions: [
            "Why is the sky dark at night? It sounds stupid. It isn't 🌌 {tags}",
            "Words that exist in only one language, no. {n} {emoji} {tags}",
            "A map that changed how I see the world 🗺️ {tags}",
            "My student asked this and I had to sit down {emoji}",
            "You've been told wrong about glaciers {tags}",
            "In 1832 a man built a bridge that nobody had asked for. The council fined him. The city grew around it anyway. A hundred years later the bridge was the only way across for six weeks, because the new one had been built too low.\n\nThere's a lesson in it, and I am not sure that it's the one you think. Sources are in the comments, as always; corrections too. Thank you to the archive for letting me hold the actual drawing (with gloves, don't worry). {tags}",
            "Explain it like I'm five, episode {n} 🧪 {tags}",
            "Three minutes, one idea, zero formulas {tags}",
        ],
    },
    Topic {
        category: "Home & DIY",
        emoji: "🪴",
        hashtags: ["diy", "plants", "renovation", "woodworking"],
        projects: [
            ("sawdustandtea", "Sawdust & Tea"),
            ("thecrookedshelf", "The Crooked Shelf"),
            ("ferndepartment", "Fern Department"),
            ("smallroomsclub", "Small Rooms Club"),
        ],
        captions: [
            "We bought a ruin. Day {n}: the roof {emoji} {tags}",
            "Measure twice, cut once, swear three times 🪚 {tags}",
            "This chair cost me 4 euros and 40 hours {tags}",
            "Is it dead? No. It's thinking about it {emoji}",
            "Before → after → after the cat 🐾 {tags}",
            "How to fix a wobbly table, for good {tags}",
            "The wallpaper had wallpaper under it. It had wallpaper under it. Part {n} 😭",
            "Propagation station update, week {n} 🌱 {tags}",
        ],
    },
];

/// Names of further accounts of a creator: as in a username, and as displayed.
pub const SIDE_ACCOUNTS: [(&str, &str); 6] = [
    ("daily", "daily"),
    ("clips", "Clips"),
    ("behind", "behind the scenes"),
    ("shorts", "Shorts"),
    ("live", "live"),
    ("archive", "Archive"),
];
