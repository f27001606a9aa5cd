//! Copies of pictures: decoding and encoding, and the folder that holds the files.

pub mod decode_thread;
pub mod folder;
mod jpeg;
pub mod picture;
mod reader;
mod webp;

pub use decode_thread::DecodeThread;
pub use folder::MediaFolder;
pub use reader::MediaReader;
